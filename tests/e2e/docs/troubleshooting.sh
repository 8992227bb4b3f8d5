# SPDX-License-Identifier: Apache-2.0
# docs/troubleshooting.md has the words of today's sources: each literal piece of a message is in their
# strings, and each error of ct.h has a row with its text.
. "$CT_SOURCE/tests/e2e/lib.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
cat >compare.py <<'END'
import ast, pathlib, re, sys

source, page = pathlib.Path(sys.argv[1]), open(sys.argv[2]).read()
STRING, CHARACTER = r'"(?:[^"\\\n]|\\.)*"', r"'(?:[^'\\\n]|\\.)*'"
VARIES = re.compile(r"%[-+ #0]*[*\d]*(?:\.[*\d]*)?(?:hh?|ll?|j|z|t)?[a-zA-Z%]|\{[^}]*\}|[][]")


def strings_of_c(text):
    code = re.sub(rf"/\*.*?\*/|//[^\n]*|({STRING}|{CHARACTER})", lambda found: found[1] or " ", text, flags=re.S)
    for run in re.findall(rf"{CHARACTER}|{STRING}(?:\s*{STRING})*", code):
        yield re.sub(r'\\(["\\])', r"\1", "".join(part[1:-1] for part in re.findall(STRING, run)))


def strings_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


strings = []
for folder in "config", "launcher", "runtime", "collectives", "cuda":
    for file in (source / folder).rglob("*.[ch]"):
        strings += strings_of_c(file.read_text())
for file in (source / "python/ctrun").glob("*.py"):
    strings += strings_of_python(file.read_text())
strings = "\n".join(VARIES.sub("\n", text) for text in strings)

rows = [line.split(" | ")[0] for line in page.splitlines() if re.match(r"\| `(?!CT_ERR_)", line)]
messages = [message for row in rows for message in re.findall(r"`([^`]+)`", row)]
for message in messages:
    pieces = [piece.strip() for piece in re.split(r"\.\.\.|[][]", message) if len(piece.strip()) >= 8]
    if not pieces or any(piece not in strings for piece in pieces):
        print(f"no source has: {message}")
for name, text in re.findall(r'X\((ERR_\w+), -\d+, "(.*?)"', (source / "include/ct.h").read_text()):
    if f"\n| `CT_{name}` | {text} | " not in page:
        print(f"no row for CT_{name}, {text}")
print(f"{'enough' if len(messages) >= 90 else len(messages)} messages")
END
page=$CT_SOURCE/docs/troubleshooting.md
compare() { python3 compare.py "$CT_SOURCE" "$1"; }
expect "each message is in the sources, and each error in the page" is "$(compare "$page")" "enough messages"
sed 's/not sent by ctrun/not given by ctrun/; /^| `CT_ERR_PEER`/d' "$page" >spoiled
expect "  what is not there is named" is "$(compare spoiled)" "no source has: SIGKILL, not given by ctrun
no row for CT_ERR_PEER, a peer is gone
enough messages"
finish
