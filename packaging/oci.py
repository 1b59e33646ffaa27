#!/usr/bin/env python3
"""Makes an OCI image of files, as one archive: oci.py ROOT ARCHIVE ARCHITECTURE VERSION.

No daemon and no base image is needed: the program is static, so the image is the program, its library and /tmp.
The same files make the same archive.
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path

# What `make install-program` installs that needs nothing else.
FILES = ["usr/bin/discnice", "usr/lib/discnice/libdiscnice.so"]
TIME = "1970-01-01T00:00:00Z"


def entry(name, kind, mode, size=0):
    """Returns what tar notes of a file that belongs to root."""
    found = tarfile.TarInfo(name)
    found.type, found.mode, found.size = kind, mode, size
    return found


def layer(root):
    """Returns the files of the image as a tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        folders = {str(folder) for name in FILES for folder in Path(name).parents} - {"."}
        for folder in sorted(folders):
            archive.addfile(entry(folder, tarfile.DIRTYPE, 0o755))
        archive.addfile(entry("tmp", tarfile.DIRTYPE, 0o1777))
        for name in FILES:
            data = (root / name).read_bytes()
            mode = 0o755 if "/bin/" in name else 0o644
            archive.addfile(entry(name, tarfile.REGTYPE, mode, len(data)), io.BytesIO(data))
    return out.getvalue()


class Image:
    """The blobs of an image by their digests."""

    def __init__(self):
        self.blobs = {}

    def add(self, media, data):
        """Adds a blob; returns what others refer to it by."""
        if not isinstance(data, bytes):
            data = json.dumps(data, sort_keys=True).encode()
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    def write(self, path, index):
        """Writes the archive of an image layout."""
        files = {"oci-layout": {"imageLayoutVersion": "1.0.0"}, "index.json": index}
        files = {name: json.dumps(value).encode() for name, value in files.items()}
        files |= {f"blobs/sha256/{digest}": data for digest, data in sorted(self.blobs.items())}
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
            for folder in ["blobs", "blobs/sha256"]:
                archive.addfile(entry(folder, tarfile.DIRTYPE, 0o755))
            for name, data in files.items():
                archive.addfile(entry(name, tarfile.REGTYPE, 0o644, len(data)), io.BytesIO(data))


def main():
    root, path, architecture, version = sys.argv[1:]
    prefix = "application/vnd.oci.image"
    image = Image()
    files = layer(Path(root))
    packed = image.add(f"{prefix}.layer.v1.tar+gzip", gzip.compress(files, 9, mtime=0))
    config = {
        "architecture": architecture,
        "os": "linux",
        "created": TIME,
        "config": {"Entrypoint": ["/usr/bin/discnice"], "Env": ["PATH=/usr/bin:/bin"], "WorkingDir": "/tmp"},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(files).hexdigest()]},
        "history": [{"created": TIME, "created_by": "packaging/oci.py"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{prefix}.manifest.v1+json",
        "config": image.add(f"{prefix}.config.v1+json", config),
        "layers": [packed],
        "annotations": {"org.opencontainers.image.title": "discnice", "org.opencontainers.image.version": version},
    }
    reference = image.add(f"{prefix}.manifest.v1+json", manifest)
    reference["platform"] = {"architecture": architecture, "os": "linux"}
    reference["annotations"] = {"org.opencontainers.image.ref.name": version}
    image.write(path, {"schemaVersion": 2, "manifests": [reference]})


main()
