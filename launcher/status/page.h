/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - the text of page.html, which embed.S puts into ctrun. */
#ifndef LAUNCHER_STATUS_PAGE_H
#define LAUNCHER_STATUS_PAGE_H

extern const char status_page[] __attribute__((visibility("hidden")));

#endif
