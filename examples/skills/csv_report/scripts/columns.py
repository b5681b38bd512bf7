"""Lists the columns of a CSV file with their types. Arguments come as JSON on standard input."""

import csv
import json
import sys


def kind(values):
    """The narrowest type that all values have."""
    for name, read in (("integer", int), ("number", float)):
        try:
            for value in values:
                read(value)
            return name
        except ValueError:
            pass
    return "text"


def main():
    given = json.load(sys.stdin)
    try:
        with open(given["path"], newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            names = next(rows, [])
            looked = [row for row, _ in zip(rows, range(given["rows"]))]
    except OSError as error:
        sys.exit(f"{given['path']}: {error.strerror}")
    columns = []
    for at, name in enumerate(names):
        values = [row[at] if at < len(row) else "" for row in looked]
        filled = [value for value in values if value.strip()]
        columns.append(
            {"name": name, "type": kind(filled) if filled else "empty", "missing": len(values) - len(filled)}
        )
    print(json.dumps({"columns": columns, "rows_looked_at": len(looked)}))


main()
