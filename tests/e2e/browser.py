# SPDX-License-Identifier: Apache-2.0
"""browser.py - a page in headless Chromium, by its debugging protocol.

    browser.py URL STEP...      the steps, one after the other:
        wait=EXPRESSION         until the JavaScript expression is true, at most 30 s
        say=EXPRESSION          prints its value
        do=STATEMENTS           runs them
        shot=FILE.png           a picture of the page, of 2400 pixels at most
        size=WIDTHxHEIGHT  dark  light
"""
import base64, http.client, json, os, shutil, socket, struct, subprocess, sys, tempfile, time, urllib.request


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp()
        self.process = subprocess.Popen(
            [shutil.which("chromium"), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--remote-debugging-port=0", "--no-proxy-server",
             "--user-data-dir=" + self.folder, "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port, pages = self.pages()
        where = next(p["webSocketDebuggerUrl"] for p in pages if p["type"] == "page")
        self.socket = socket.create_connection(("127.0.0.1", int(port)), timeout=60)
        self.socket.sendall(("GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n"
                             % (where[where.index("/devtools"):], base64.b64encode(os.urandom(16)).decode())).encode())
        self.bytes = self.socket.makefile("rb")
        while self.bytes.readline() not in (b"\r\n", b""):
            pass
        self.number = 0

    def pages(self):
        """The port of the protocol, and its pages.  The port's file may be there before all of it is, or before the port."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                port = open(self.folder + "/DevToolsActivePort").readline().strip()
                return port, json.load(urllib.request.urlopen("http://127.0.0.1:%s/json" % port, timeout=60))
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(0.05)
        sys.exit("browser.py: chromium has not started in 60 s")

    def message(self):
        text = b""
        while True:
            first, size = self.bytes.read(2)
            if size == 126:
                size, = struct.unpack(">H", self.bytes.read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.bytes.read(8))
            text += self.bytes.read(size)
            if first & 0x80:
                return json.loads(text)

    def call(self, method, **arguments):
        self.number += 1
        text = json.dumps({"id": self.number, "method": method, "params": arguments}).encode()
        key = os.urandom(4)
        size = struct.pack(">BB", 0x81, 0x80 | len(text)) if len(text) < 126 else struct.pack(">BBH", 0x81, 0xfe, len(text))
        self.socket.sendall(size + key + bytes(c ^ key[i % 4] for i, c in enumerate(text)))
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit("browser.py: %s: %s" % (method, answer["error"]["message"]))
                return answer["result"]

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise ValueError("%s: %s" % (expression, result["exceptionDetails"]["exception"].get("description")))
        return result["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + 30
        while not self.is_true(expression):
            if time.monotonic() > end:
                sys.exit("browser.py: not true within 30 s: %s; the page says: %s"
                         % (expression, self.value("document.body.innerText")))
            time.sleep(0.1)

    def is_true(self, expression):
        try:
            return self.value("!!(%s)" % expression)
        except ValueError:  # of what is not there yet
            return False

    def shot(self, file):
        height = min(2400, self.value("document.documentElement.scrollHeight"))
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                            clip={"x": 0, "y": 0, "width": self.value("innerWidth"), "height": height, "scale": 1})
        with open(file, "wb") as out:
            out.write(base64.b64decode(picture["data"]))

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def main(url, steps):
    browser = Browser()
    try:
        browser.size(1200, 800)
        browser.scheme("light")
        browser.call("Page.navigate", url=url)
        for step in steps:
            word, _, text = step.partition("=")
            if word == "wait":
                browser.wait(text)
            elif word == "say":
                print(browser.value(text))
            elif word == "do":
                browser.value(text)
            elif word == "shot":
                browser.shot(text)
            elif word == "size":
                browser.size(*map(int, text.split("x")))
            elif word in ("dark", "light"):
                browser.scheme(word)
            else:
                sys.exit("browser.py: what is %s?" % step)
    finally:
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
