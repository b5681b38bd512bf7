"""Writes the first N Fibonacci numbers to a file, one per line."""

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
    if len(sys.argv) != 3 or not sys.argv[1].isdigit() or not 1 <= int(sys.argv[1]) <= MOST:
        sys.exit(f"usage: fib.py N FILE, with N from 1 to {MOST}")
    numbers = [str(number) for number in fibonacci(int(sys.argv[1]))]
    target = pathlib.Path(sys.argv[2])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(numbers) + "\n")
    print(f"wrote {len(numbers)} numbers to {target}")


if __name__ == "__main__":
    main()
