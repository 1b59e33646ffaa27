#!/usr/bin/env python3
"""Indexes the words of text files, politely.

    python3 indexer.py INDEX.sqlite DIRECTORY...

Reports two metrics, as the content indexer of MS Manners section 4.4 does: bytes read
and entries added. An index can be searched with sqlite3:

    sqlite3 INDEX.sqlite "select path from words where word = 'manners'"
"""

import os
import re
import sqlite3
import sys

import discnice

WORD = re.compile(r"[^\W\d_]{3,30}")
LARGEST = 16 << 20


def text_files(directories):
    for directory in directories:
        for folder, _, names in os.walk(directory):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    yield path


def words_of(path):
    """The distinct words and the number of bytes read; no words for what is not text."""
    with open(path, "rb") as file:
        content = file.read(LARGEST)
    if b"\0" in content[:4096]:
        return set(), len(content)
    text = content.decode("utf-8", errors="replace")
    return {word.lower() for word in WORD.findall(text)}, len(content)


def main(index, directories):
    database = sqlite3.connect(index)
    database.execute("create table if not exists words (word, path, primary key (word, path))")
    with discnice.Job("bytes", "entries") as job:
        for path in text_files(directories):
            try:
                words, size = words_of(path)
            except OSError as error:
                print(f"indexer: {error}", file=sys.stderr)
                continue
            rows = [(word, path) for word in words]
            database.executemany("insert or ignore into words values (?, ?)", rows)
            # No lock is held while the job may be suspended (section 3, priority inversion).
            database.commit()
            job.add(bytes=size, entries=len(rows))
    database.close()
    print(f"waited {job.waited:.1f} s for others")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
