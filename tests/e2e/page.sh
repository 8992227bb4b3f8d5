# SPDX-License-Identifier: Apache-2.0
# page.sh - asks the page of ctrun --status, for tests; after lib.sh.
#   ask [METHOD] HOST/PORT PATH [HEADER...]   says "200 type", and writes the body to .body; AS=UID: as that user
#   ask unix:SOCKET PATH                      so too
#   say EXPRESSION                            of .body as JSON: j, and ranks, those of all nodes
# ${at:-} in front of it: on that host.
cat >ask.py <<'END'
import http.client, os, socket, sys
words = sys.argv[1:]
if "AS" in os.environ:
    out = open(".body", "wb")
    "loads what another user may not".encode("idna")
    os.setuid(int(os.environ["AS"]))
method = words.pop(0) if words[0].isupper() else "GET"
if words[0].startswith("unix:"):
    c = http.client.HTTPConnection("localhost", timeout=20)
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(words.pop(0)[5:])
else:
    c = http.client.HTTPConnection(*words.pop(0).split("/"), timeout=20)
c.request(method, words[0], headers=dict(w.split(": ", 1) for w in words[1:]))
r = c.getresponse()
body = r.read()
(out if "AS" in os.environ else open(".body", "wb")).write(body)
print(r.status, r.getheader("Content-Type"))
END
cat >say.py <<'END'
import json, sys
j = json.load(open(".body"))
ranks = [r for n in j["nodes"] for r in n["ranks"]]
print(eval(sys.argv[1]))
END
ask() { ${at:-} python3 ask.py "$@" 2>&1 | tail -n 1; }
say() { python3 say.py "$1" 2>&1 | tail -n 1; }
