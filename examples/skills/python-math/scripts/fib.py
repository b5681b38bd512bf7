"""Writes the first N Fibonacci numbers, one per line, to a file or to standard output."""

import pathlib
import sys

MOST = 10_000


def fibonacci(count):
    """The first numbers of the sequence."""
    here, there = 0, 1
    for _ in range(count):
        yield here
        here, there = there, here + there


def main():
    words = sys.argv[1:]
    if len(words) not in (1, 2) or not words[0].isdecimal() or not 1 <= int(words[0]) <= MOST:
        sys.exit(f"usage: fib.py N [FILE], with N from 1 to {MOST}")
    numbers = [str(number) for number in fibonacci(int(words[0]))]
    text = "\n".join(numbers) + "\n"
    if len(words) == 1:
        print(text, end="")
        return
    target = pathlib.Path(words[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    print(f"wrote {len(numbers)} numbers to {target}")


if __name__ == "__main__":
    main()
