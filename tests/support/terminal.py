"""A program on a terminal of a given size, and what it shows there: as much of a VT100 as ncurses
uses for TERM=vt100."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

SEQUENCE = re.compile(r"\x1b(?:\[([?0-9;]*)([A-Za-z@])|([=>78MHDE])|[()][A-Z0-9])|"
                      r"([\r\n\b\x0e\x0f\x00\x07\t])|(.)", re.S)


class Terminal:
    def __init__(self, command, columns, lines, env):
        self.columns, self.lines = columns, lines
        self.cells = [[" "] * columns for _ in range(lines)]
        self.x = self.y = 0
        self.rest = ""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen(list(map(str, command)), stdin=slave, stdout=slave,
                                        stderr=slave, start_new_session=True,
                                        env=dict(env, TERM="vt100", LC_ALL="C"))
        os.close(slave)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)

    def wait(self, condition, seconds):
        """The text for which the condition holds, or an error with the last one."""
        end = time.monotonic() + seconds
        while not condition(self.text()):
            if time.monotonic() > end:
                raise AssertionError(f"waited in vain; the terminal shows\n{self.text()}")
            self.read()
        return self.text()

    def read(self):
        if not select.select([self.master], [], [], 0.05)[0]:
            return
        try:
            self.rest += os.read(self.master, 1 << 16).decode("latin-1")
        except OSError:  # the program has ended
            return
        at = 0
        while match := SEQUENCE.match(self.rest, at):
            if match[5] == "\x1b":  # the rest of it comes later
                break
            self.apply(match)
            at = match.end()
        self.rest = self.rest[at:]

    def apply(self, match):
        if match[5]:
            self.put(match[5])
        elif match[4]:
            self.control(match[4])
        elif match[2]:
            self.move(match[2], [int(n) for n in re.findall(r"\d+", match[1])])
        elif match[3] == "M":
            self.y = max(self.y - 1, 0)

    def put(self, letter):
        if self.x < self.columns:
            self.cells[self.y][self.x] = letter
        self.x += 1

    def control(self, letter):
        if letter == "\r":
            self.x = 0
        elif letter == "\n":
            self.y = min(self.y + 1, self.lines - 1)
        elif letter == "\b":
            self.x = max(min(self.x, self.columns) - 1, 0)
        elif letter == "\t":
            self.x = min((self.x // 8 + 1) * 8, self.columns - 1)

    def move(self, command, numbers):
        first = numbers[0] if numbers else 0
        if command == "H":
            y, x = (numbers + [1, 1])[:2] if len(numbers) != 1 else (first, 1)
            self.y, self.x = min(y, self.lines) - 1, min(x, self.columns) - 1
        elif command in "ABCD":
            step = max(first, 1)
            self.y += {"A": -step, "B": step}.get(command, 0)
            self.x += {"C": step, "D": -step}.get(command, 0)
        elif command == "K":
            begin = 0 if first else self.x
            end = self.x + 1 if first == 1 else self.columns
            self.cells[self.y][begin:end] = " " * (end - begin)
        elif command == "J":
            self.move("K", [first])
            for y in {0: range(self.y + 1, self.lines), 1: range(self.y),
                      2: range(self.lines)}[first]:
                self.cells[y] = [" "] * self.columns
