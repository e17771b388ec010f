"""A web server on this machine whose files a test chooses, and which can misbehave on purpose."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class FileServer:
    """Serves `files` by name; writes down each request as (name, first byte asked for).

    breaks_after: bytes after which each of the coming connections is dropped, one number a connection.
    ranges: whether the server knows how to send a part.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.requests = files, []
        self.breaks_after: list[int] = []
        self.ranges = True
        self.address = ""

    @contextmanager
    def running(self) -> Iterator["FileServer"]:
        """Serve while the `with` block lasts."""
        ours = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                ours.answer(self)

            def log_message(self, *arguments) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.address = f"http://127.0.0.1:{server.server_port}/data"
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            yield self
            server.shutdown()
            thread.join()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Send the file asked for, or what is left of it."""
        name, asked = handler.path.removeprefix("/data/"), handler.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        self.requests.append((name, start))
        if name not in self.files:
            handler.send_error(404)
            return
        content, first = self.files[name], start if self.ranges else 0
        handler.send_response(206 if first else 200)
        handler.send_header("Content-Length", str(len(content) - first))
        if first:
            handler.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        handler.end_headers()
        stop = self.breaks_after.pop(0) if self.breaks_after else len(content)
        handler.wfile.write(content[first : first + stop])
