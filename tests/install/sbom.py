"""`python -m tests.install.sbom`: writes dist/sbom.cdx.json, the bill of materials (CycloneDX 1.5).

uv lists the Python packages of its lock; the jars that are fetched later are added from their locks.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

from drover.jars.lock import Jar, read_lock
from tests.architecture.repository import ROOT
from tests.docker.packages import UV

FILE = ROOT / "dist" / "sbom.cdx.json"


def bill() -> dict[str, Any]:
    """The bill of materials: the core with every extra, and every jar of every set."""
    arguments = ("--frozen", "--quiet", "--no-dev", "--all-extras", "--format", "cyclonedx1.5")
    done = subprocess.run([UV, "export", *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    document: dict[str, Any] = json.loads(done.stdout)
    jars = {jar.path: jar for jars in read_lock().values() for jar in jars}
    document["components"] += [_component(jars[path]) for path in sorted(jars)]
    return document


def _component(jar: Jar) -> dict[str, Any]:
    purl = f"pkg:maven/{jar.group}/{jar.name}@{jar.version}"
    if jar.classifier is not None:
        purl += f"?classifier={jar.classifier}"
    return {
        "type": "library",
        "bom-ref": purl,
        "group": jar.group,
        "name": jar.name,
        "version": jar.version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
    }


def main() -> None:
    """Write it."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(bill(), indent=1) + "\n", encoding="utf-8")
    print(Path(FILE).relative_to(ROOT))


if __name__ == "__main__":
    main()
