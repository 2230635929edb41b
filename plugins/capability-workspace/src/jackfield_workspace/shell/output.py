"""What a command says: both ends of it, and how much was said in all."""

from __future__ import annotations


class Output:
    """Keeps the beginning and the end of a stream of bytes; the middle is forgotten."""

    def __init__(self, most: int) -> None:
        self._head_room = most // 3
        self._tail_room = most - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        self.lines = 0

    def take(self, chunk: bytes) -> None:
        """Take what was said next."""
        self.total += len(chunk)
        self.lines += chunk.count(b"\n")
        room = self._head_room - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > self._tail_room * 2:
            del self._tail[: -self._tail_room]

    @property
    def left_out(self) -> int:
        """How many bytes are not in the text."""
        return max(self.total - self._head_room - self._tail_room, 0)

    def text(self) -> str:
        """What was said, as far as it was kept."""
        if not self.left_out:
            return (self._head + self._tail).decode("utf-8", "replace")
        end = self._tail[-self._tail_room :]
        between = f"\n[... {self.left_out} bytes left out ...]\n"
        return f"{self._head.decode('utf-8', 'replace')}{between}{end.decode('utf-8', 'replace')}"
