#!/bin/sh
# Prints the commits since the last tag, or all of them where there is no tag.
set -eu

if last=$(git describe --tags --abbrev=0 2>/dev/null); then
    git log --oneline "$last..HEAD"
else
    git log --oneline
fi
