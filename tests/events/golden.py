"""The golden bytes: what Drover once wrote, checked in, and decoded for ever.

`python -m tests.events.golden` adds the bytes of new samples. It never changes bytes that are there: a type whose old
bytes do not decode any more has broken the contract, and the type must be mended, not the file.
"""

import json
from pathlib import Path

import msgspec

from drover.events.codec import command_digest, encode_command, encode_progress, encode_record
from tests.events.command_samples import COMMANDS
from tests.events.progress_samples import PROGRESS
from tests.events.samples import EVENTS, RECORDS, batch_of

FILE = Path(__file__).parent / "golden.json"


class Golden(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message as it was written: msgpack in hexadecimal; of commands also the JSON text and the digest."""

    msgpack: str
    json: str | None = None
    digest: str | None = None


def read() -> dict[str, Golden]:
    """Return what is checked in, by the sample's name."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Golden])


def made() -> dict[str, Golden]:
    """Return what would be written today."""
    return {
        **{
            name: Golden(
                encode_command(command).hex(),
                encode_command(command, as_json=True).decode(),
                command_digest(command).hex(),
            )
            for name, command in COMMANDS.items()
        },
        **{name: Golden(encode_record(batch_of(event)).hex()) for name, event in EVENTS.items()},
        **{name: Golden(encode_record(record).hex()) for name, record in RECORDS.items()},
        **{name: Golden(encode_progress(sample).hex()) for name, sample in PROGRESS.items()},
    }


def main() -> None:
    """Add what is missing."""
    known = read() if FILE.exists() else {}
    text = json.dumps(msgspec.to_builtins({**made(), **known}), indent=1)
    FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
