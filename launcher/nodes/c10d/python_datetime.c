/* SPDX-License-Identifier: Apache-2.0 */
/* python_datetime.c - year (2 bytes, big-endian), month, day, hour, minute, second,
 * microseconds (3 bytes), of the calendar that has always been Gregorian.
 *
 * Years are counted from March: the leap day is then the last of its year, and a
 * day's number needs no table of months. */
#include "launcher/nodes/c10d/python_datetime.h"

#define SECOND INT64_C(1000000)
#define DAY (86400 * SECOND)

enum { DAYS_TO_1970 = 719468 }; /* from the 1st of March of the year 0 */

static int64_t days_of(int year, int month, int day)
{
    const int y = month > 2 ? year : year - 1;
    const int in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return INT64_C(365) * y + y / 4 - y / 100 + y / 400 + in_year - DAYS_TO_1970;
}

static int days_in(int year, int month)
{
    const int is_leap = (year % 4 == 0 && year % 100) || year % 400 == 0;

    if (month == 2)
        return 28 + is_leap;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

int utc_read(const unsigned char bytes[UTC_BYTES], int64_t *us)
{
    const int year = bytes[0] << 8 | bytes[1];
    const int month = bytes[2] & 0x7f; /* above it, which of two equal wall clock times it is */
    const int fraction = bytes[7] << 16 | bytes[8] << 8 | bytes[9];

    if (year < 1 || year > 9999 || month < 1 || month > 12 || bytes[3] < 1
        || bytes[3] > days_in(year, month) || bytes[4] > 23 || bytes[5] > 59 || bytes[6] > 59
        || fraction >= SECOND)
        return -1;
    *us = days_of(year, month, bytes[3]) * DAY
          + (bytes[4] * 3600 + bytes[5] * 60 + bytes[6]) * SECOND + fraction;
    return 0;
}

/* The year and the month of a day's number. */
static void date_of(int64_t days, int *year, int *month, int *day)
{
    const int64_t since = days + DAYS_TO_1970;
    const int in_era = (int)(since % 146097); /* 400 years have 146097 days */
    const int y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    const int in_year = in_era - (365 * y + y / 4 - y / 100);
    const int from_march = (5 * in_year + 2) / 153;

    *day = in_year - (153 * from_march + 2) / 5 + 1;
    *month = from_march < 10 ? from_march + 3 : from_march - 9;
    *year = y + 400 * (int)(since / 146097) + (*month <= 2);
}

void utc_write(int64_t us, unsigned char bytes[UTC_BYTES])
{
    const int64_t first = days_of(1, 1, 1) * DAY, last = (days_of(9999, 12, 31) + 1) * DAY - 1;
    const int64_t moment = us < first ? first : us > last ? last : us;
    const int64_t days = (moment - first) / DAY + days_of(1, 1, 1);
    const int64_t in_day = moment - days * DAY;
    const int seconds = (int)(in_day / SECOND), fraction = (int)(in_day % SECOND);
    int year, month, day;

    date_of(days, &year, &month, &day);
    bytes[0] = (unsigned char)(year >> 8);
    bytes[1] = (unsigned char)year;
    bytes[2] = (unsigned char)month;
    bytes[3] = (unsigned char)day;
    bytes[4] = (unsigned char)(seconds / 3600);
    bytes[5] = (unsigned char)(seconds / 60 % 60);
    bytes[6] = (unsigned char)(seconds % 60);
    bytes[7] = (unsigned char)(fraction >> 16);
    bytes[8] = (unsigned char)(fraction >> 8);
    bytes[9] = (unsigned char)fraction;
}
