/* SPDX-License-Identifier: Apache-2.0 */
/* c10d_texts.h - rendezvous states as PyTorch 2.15 wrote them: base64 of pickle.dumps().
 * Heartbeats begin at 2026-11-21 03:25:13.710030 UTC, a second apart. */
#ifndef TESTS_LAUNCHER_C10D_TEXTS_H
#define TESTS_LAUNCHER_C10D_TEXTS_H

/* clang-format off */

/* _RendezvousState() as it is created */
static const char text_new[] =
    "gASVywAAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOU"
    "jBBfUmVuZGV6dm91c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiYwIZGVhZGxpbmWUTowGY2xvc2Vk"
    "lImMDHBhcnRpY2lwYW50c5R9lIwJd2FpdF9saXN0lI+UjA9yZWR1bmRhbmN5X2xpc3SUj5SMD2xhc3RfaGVhcnRiZWF0"
    "c5R9lHViLg==";

/* a complete round of one node */
static const char text_one[] =
    "gASVbAEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOU"
    "jBBfUmVuZGV6dm91c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiIwIZGVhZGxpbmWUTowGY2xvc2Vk"
    "lImMDHBhcnRpY2lwYW50c5R9lGgAjAlfTm9kZURlc2OUk5QpgZR9lCiMBGFkZHKUjA1ub2RlMC5leGFtcGxllIwDcGlk"
    "lE2gD4wIbG9jYWxfaWSUSwB1YksAc4wJd2FpdF9saXN0lI+UjA9yZWR1bmRhbmN5X2xpc3SUj5SMD2xhc3RfaGVhcnRi"
    "ZWF0c5R9lGgNjAhkYXRldGltZZSMCGRhdGV0aW1llJOUQwoH6gsVAxkNCtWOlGgZjAh0aW1lem9uZZSTlGgZjAl0aW1l"
    "ZGVsdGGUk5RLAEsASwCHlFKUhZRSlIaUUpRzdWIu";

/* node0.example and node1.example, complete */
static const char text_two[] =
    "gASVrAEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOU"
    "jBBfUmVuZGV6dm91c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiIwIZGVhZGxpbmWUTowGY2xvc2Vk"
    "lImMDHBhcnRpY2lwYW50c5R9lChoAIwJX05vZGVEZXNjlJOUKYGUfZQojARhZGRylIwNbm9kZTAuZXhhbXBsZZSMA3Bp"
    "ZJRNoA+MCGxvY2FsX2lklEsAdWJLAGgMKYGUfZQoaA+MDW5vZGUxLmV4YW1wbGWUaBFNoQ9oEksAdWJLAXWMCXdhaXRf"
    "bGlzdJSPlIwPcmVkdW5kYW5jeV9saXN0lI+UjA9sYXN0X2hlYXJ0YmVhdHOUfZQoaA2MCGRhdGV0aW1llIwIZGF0ZXRp"
    "bWWUk5RDCgfqCxUDGQ0K1Y6UaByMCHRpbWV6b25llJOUaByMCXRpbWVkZWx0YZSTlEsASwBLAIeUUpSFlFKUhpRSlGgT"
    "aB5DCgfqCxUDGQ4K1Y6UaCeGlFKUdXViLg==";

/* round 7: node0 participates, node1 waits, node2 is a spare */
static const char text_three_roles[] =
    "gASV6QEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOU"
    "jBBfUmVuZGV6dm91c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLB4wIY29tcGxldGWUiIwIZGVhZGxpbmWUTowGY2xvc2Vk"
    "lImMDHBhcnRpY2lwYW50c5R9lGgAjAlfTm9kZURlc2OUk5QpgZR9lCiMBGFkZHKUjA1ub2RlMC5leGFtcGxllIwDcGlk"
    "lE2gD4wIbG9jYWxfaWSUSwB1YksAc4wJd2FpdF9saXN0lI+UKGgMKYGUfZQoaA+MDW5vZGUxLmV4YW1wbGWUaBFNoQ9o"
    "EksAdWKQjA9yZWR1bmRhbmN5X2xpc3SUj5QoaAwpgZR9lChoD4wNbm9kZTIuZXhhbXBsZZRoEU2iD2gSSwB1YpCMD2xh"
    "c3RfaGVhcnRiZWF0c5R9lChoDYwIZGF0ZXRpbWWUjAhkYXRldGltZZSTlEMKB+oLFQMZDQrVjpRoH4wIdGltZXpvbmWU"
    "k5RoH4wJdGltZWRlbHRhlJOUSwBLAEsAh5RSlIWUUpSGlFKUaBVoIUMKB+oLFQMZDgrVjpRoKoaUUpRoGmghQwoH6gsV"
    "AxkPCtWOlGgqhpRSlHV1Yi4=";

/* times without a zone, the last call running */
static const char text_naive[] =
    "gASVUQEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOU"
    "jBBfUmVuZGV6dm91c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiYwIZGVhZGxpbmWUjAhkYXRldGlt"
    "ZZSMCGRhdGV0aW1llJOUQwoH6gsVAxkrCtWOlIWUUpSMBmNsb3NlZJSJjAxwYXJ0aWNpcGFudHOUfZRoAIwJX05vZGVE"
    "ZXNjlJOUKYGUfZQojARhZGRylIwNbm9kZTAuZXhhbXBsZZSMA3BpZJRNoA+MCGxvY2FsX2lklEsAdWJLAHOMCXdhaXRf"
    "bGlzdJSPlIwPcmVkdW5kYW5jeV9saXN0lI+UjA9sYXN0X2hlYXJ0YmVhdHOUfZRoE2gKQwoH6gsVAxkNCtWOlIWUUpRz"
    "dWIu";

/* as trees before the hot spares wrote it: no zones, no redundancy_list */
static const char text_no_redundancy_list[] =
    "gASVKwEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOU"
    "jBBfUmVuZGV6dm91c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiIwIZGVhZGxpbmWUTowGY2xvc2Vk"
    "lImMDHBhcnRpY2lwYW50c5R9lGgAjAlfTm9kZURlc2OUk5QpgZR9lCiMBGFkZHKUjA1ub2RlMC5leGFtcGxllIwDcGlk"
    "lE2gD4wIbG9jYWxfaWSUSwB1YksAc4wJd2FpdF9saXN0lI+UjA9sYXN0X2hlYXJ0YmVhdHOUfZRoDYwIZGF0ZXRpbWWU"
    "jAhkYXRldGltZZSTlEMKB+oLFQMZDQrVjpSFlFKUc3ViLg==";

/* failures, label, weights, since and same are of no PyTorch of today */
static const char text_unknown_attributes[] =
    "gASVTQIAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOU"
    "jBBfUmVuZGV6dm91c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiYwIZGVhZGxpbmWUjAhkYXRldGlt"
    "ZZSMCGRhdGV0aW1llJOUQwoH6gsVAxkrCtWOlGgIjAh0aW1lem9uZZSTlGgIjAl0aW1lZGVsdGGUk5RLAEsASwCHlFKU"
    "hZRSlIaUUpSMBmNsb3NlZJSIjAxwYXJ0aWNpcGFudHOUfZQoaACMCV9Ob2RlRGVzY5STlCmBlH2UKIwEYWRkcpSMDW5v"
    "ZGUwLmV4YW1wbGWUjANwaWSUTaAPjAhsb2NhbF9pZJRLAHViSwBoGimBlH2UKGgdjA1ub2RlMS5leGFtcGxllGgfTaEP"
    "aCBLAHViSwF1jAl3YWl0X2xpc3SUj5SMD3JlZHVuZGFuY3lfbGlzdJSPlIwPbGFzdF9oZWFydGJlYXRzlH2UKGgbaApD"
    "CgfqCxUDGQ0K1Y6UaBOGlFKUaCFoCkMKB+oLFQMZDgrVjpRoE4aUUpR1jAhmYWlsdXJlc5R9lGgbSwJzjAVsYWJlbJSM"
    "BnNww6TFpZSMB3dlaWdodHOUXZQoRz/gAAAAAAAAKEsBSwJLA0sEdJSKCwAAAAAAAAAAAAABSv////9OQwF4lChLAZGU"
    "ZYwFc2luY2WUaApDCgfqCxUDGQ0K1Y6UaBOGlFKUjARzYW1llF2UKGgbaBtldWIu";

/* the same as text_one, of Python 3.14 */
static const char text_protocol_5[] =
    "gAWVbAEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOU"
    "jBBfUmVuZGV6dm91c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiIwIZGVhZGxpbmWUTowGY2xvc2Vk"
    "lImMDHBhcnRpY2lwYW50c5R9lGgAjAlfTm9kZURlc2OUk5QpgZR9lCiMBGFkZHKUjA1ub2RlMC5leGFtcGxllIwDcGlk"
    "lE2gD4wIbG9jYWxfaWSUSwB1YksAc4wJd2FpdF9saXN0lI+UjA9yZWR1bmRhbmN5X2xpc3SUj5SMD2xhc3RfaGVhcnRi"
    "ZWF0c5R9lGgNjAhkYXRldGltZZSMCGRhdGV0aW1llJOUQwoH6gsVAxkNCtWOlGgZjAh0aW1lem9uZZSTlGgZjAl0aW1l"
    "ZGVsdGGUk5RLAEsASwCHlFKUhZRSlIaUUpRzdWIu";

/* an addr of 300 letters, pid 4194303 */
static const char text_long_name[] =
    "gASVkAIAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOU"
    "jBBfUmVuZGV6dm91c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiIwIZGVhZGxpbmWUTowGY2xvc2Vk"
    "lImMDHBhcnRpY2lwYW50c5R9lGgAjAlfTm9kZURlc2OUk5QpgZR9lCiMBGFkZHKUWCwBAABubm5ubm5ubm5ubm5ubm5u"
    "bm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5u"
    "bm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5u"
    "bm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5u"
    "bm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5u"
    "bm5ubm5ubm6UjANwaWSUSv//PwCMCGxvY2FsX2lklEsAdWJLAHOMCXdhaXRfbGlzdJSPlIwPcmVkdW5kYW5jeV9saXN0"
    "lI+UjA9sYXN0X2hlYXJ0YmVhdHOUfZRoDYwIZGF0ZXRpbWWUjAhkYXRldGltZZSTlEMKB+oLFQMZDQrVjpRoGYwIdGlt"
    "ZXpvbmWUk5RoGYwJdGltZWRlbHRhlJOUSwBLAEsAh5RSlIWUUpSGlFKUc3ViLg==";
/* clang-format on */

#endif
