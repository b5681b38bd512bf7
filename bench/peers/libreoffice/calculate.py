"""LibreOffice in a process that has started already: calculates a workbook when it is told to.

calculate.py SOFFICE WORKBOOK starts LibreOffice and says `ready`. Then each line of its input is
answered by one line: `calculate` loads the workbook anew and answers the seconds of calculateAll(),
its first; `again` those of calculateAll() on the same workbook, which is faster; `whole OUTPUT` the
seconds of loading the workbook anew, calculateAll(), and storing it as OUTPUT; `sum` the sum of all
numbers of the sheet that was calculated. It ends with its input, and so does every process that it
started.

calculate() calculates only what is dirty, and takes no time here; calculateAll() calculates every
formula, columns of the same formula in several threads.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

import uno
from com.sun.star.beans import PropertyValue


def connect(pipe):
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext(
        "com.sun.star.bridge.UnoUrlResolver", local)
    for _ in range(600):
        try:
            return resolver.resolve(
                "uno:pipe,name=%s;urp;StarOffice.ComponentContext" % pipe)
        except Exception:
            time.sleep(0.1)
    raise SystemExit("LibreOffice does not answer")


def value(name, it):
    return PropertyValue(name, 0, it, 0)


def load(desktop, workbook):
    url = uno.systemPathToFileUrl(workbook)
    return desktop.loadComponentFromURL(url, "_blank", 0, (value("Hidden", True),))


def calculate(document):
    start = time.perf_counter()
    document.calculateAll()
    return time.perf_counter() - start


def whole(desktop, workbook, output):
    start = time.perf_counter()
    document = load(desktop, workbook)
    document.calculateAll()
    kind = value("FilterName", "Calc MS Excel 2007 XML")
    document.storeToURL(uno.systemPathToFileUrl(output), (kind,))
    seconds = time.perf_counter() - start
    document.close(True)
    return seconds


def total(document):
    sheet = document.Sheets.getByIndex(0)
    cursor = sheet.createCursor()
    cursor.gotoEndOfUsedArea(False)
    address = cursor.RangeAddress
    cells = sheet.getCellRangeByPosition(0, 0, address.EndColumn, address.EndRow)
    return sum(cell for row in cells.DataArray for cell in row if isinstance(cell, float))


def answer(desktop, workbook):
    document = None
    print("ready", flush=True)
    for line in sys.stdin:
        words = line.rstrip("\n").split(" ", 1)
        if words[0] == "calculate":
            if document:
                document.close(True)
            document = load(desktop, workbook)
            print(calculate(document), flush=True)
        elif words[0] == "again":
            print(calculate(document), flush=True)
        elif words[0] == "whole":
            print(whole(desktop, workbook, words[1]), flush=True)
        elif words[0] == "sum":
            print(total(document), flush=True)
        else:
            raise SystemExit("there is no '%s'" % words[0])
    if document:
        document.close(True)


def main():
    soffice, workbook = sys.argv[1], sys.argv[2]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        pipe = "prowess%d" % os.getpid()
        # A group of its own: soffice is a script, and the program that it starts is another one.
        office = subprocess.Popen(
            [soffice, "-env:UserInstallation=file://" + profile, "--headless", "--norestore",
             "--nologo", "--accept=pipe,name=%s;urp;" % pipe],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        try:
            context = connect(pipe)
            desktop = context.ServiceManager.createInstanceWithContext(
                "com.sun.star.frame.Desktop", context)
            answer(desktop, workbook)
            try:
                desktop.terminate()
                office.wait(20)
            except Exception:
                pass
        finally:
            try:
                os.killpg(office.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            office.wait()


main()
