#!/bin/sh
# Says whether what the skill needs is there. Replace it by a check of your own.
set -eu

for tool in sh; do
    command -v "$tool" >/dev/null || { echo "missing: $tool"; exit 1; }
done
echo "ok"
