# SPDX-License-Identifier: Apache-2.0
"""ctrun._libct knows the functions, dtypes, ops and statuses of ct.h and ct_cuda.h as they are declared there."""

import os
import re
import unittest

from ctrun import _libct

HEADER = os.environ.get("CT_HEADER") or os.path.join(os.path.dirname(_libct.__file__), "include", "ct.h")
NUMBERS = {"int": "i", "size_t": "z", "int64_t": "q", "ct_status": "i", "ct_dtype": "i", "ct_op": "i"}


def declarations():
    text = ""
    for header in (HEADER, HEADER.replace("ct.h", "ct_cuda.h")):
        with open(header, encoding="utf-8") as file:
            text += re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    text = re.sub(r"^#.*(?:\\\n.*)*$", "", text, flags=re.M)
    return re.sub(r"\s+", " ", text)


def code(argument):
    argument = argument.strip()
    if argument == "void":
        return ""
    if re.fullmatch(r"const char \*\w*", argument):
        return "s"
    return "p" if "*" in argument else NUMBERS[argument.split()[0]]


class Header(unittest.TestCase):
    def test_every_function_has_its_types(self):
        text = re.sub(r"\(\*\w+\)\([^()]*\)", "*f", declarations())  # a function as an argument
        found = {}
        for result, name, arguments in re.findall(r"CT_API ([^;()]*?)(ct_\w+)\(([^()]*)\);", text):
            result = result.strip()
            found[name] = "".join(
                code(a) for a in [result + (" x" if result[-1] != "*" else "")] + arguments.split(",")
            )
        self.assertGreater(len(found), 80)
        self.assertEqual({n: t for n, t in found.items()}, _libct.FUNCTIONS)

    def test_every_enumerator_has_its_value(self):
        text = declarations()
        dtypes = re.search(r"typedef enum ct_dtype \{(.*?)\}", text).group(1).replace(" ", "").split(",")
        self.assertEqual(["CT_" + name.upper() for name in _libct.DTYPE], dtypes)
        for name, value in _libct.DTYPE.items():
            self.assertEqual(_libct.lib.ct_dtype_size(value), _libct.DTYPES[value][1], name)
        ops = re.search(r"enum \{ (CT_SUM.*?)\}", text).group(1).replace(" ", "").split(",")
        self.assertEqual(["CT_" + name.upper() for name in _libct.OPS], [op for op in ops if op])

    def test_every_status_is_an_exception_in_the_library_s_words(self):
        with open(HEADER, encoding="utf-8") as file:
            rows = re.findall(r"X\((?:ERR_)?(\w+), (-?\d+), ", file.read())
        self.assertEqual({name: int(value) for name, value in rows}, {s.name: s.value for s in _libct.Status})
        for status in _libct.Status:
            if status != _libct.Status.OK:
                self.assertEqual(_libct.failure(status).status, status)


if __name__ == "__main__":
    unittest.main()
