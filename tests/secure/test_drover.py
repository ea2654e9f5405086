"""A worker and the command line on a secure cluster, each as the user that may do just that; and what is refused."""

import asyncio
import json

import pytest

from drover.agents.watchdog import EXIT_FAULT
from drover.cluster.kafka import KafkaDriver
from drover.errors import ClusterAccessError, ConfigurationError
from drover.local import probe
from drover.local.certificates import make_certificates
from drover.local.layout import ADMIN, OPERATOR, WORKER
from drover.local.security import client_options
from tests.integration.support import wait_for
from tests.secure.support import SecureCluster, Serving

pytestmark = [pytest.mark.cluster, pytest.mark.story]

WRONG = "wrong-password-of-nobody"
# A command that retried would go on for as long as its own deadline lets it, not end by itself.
REFUSED_WITHIN_S = 200.0


def plan(secure: SecureCluster, name: str, topic: str, replicas: list[int]) -> str:
    file = secure.directory / f"{name}.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]}))
    return str(file)


async def test_a_move_is_asked_for_made_and_told(serving: Serving) -> None:
    file = plan(serving.secure, "whole", "orders", [3, 2])
    tried = await serving.operator("alter", file, "--plan", "whole", "--dry-run")
    assert tried.code == 0, tried.errors
    sent = await serving.operator("alter", file, "--plan", "whole", "--reason", "try", "--follow")
    assert sent.code == 0, sent.errors
    assert await serving.replicas("orders") == (3, 2)
    told = await serving.operator("history", "--plan", "whole", "-o", "jsonl")
    assert [json.loads(line)["what"] for line in told.output.splitlines()][-1] == "plan-finished"
    assert (await serving.operator("replay", "--verify")).code == 0
    assert (await serving.operator("dead-letters", "list")).code == 0


async def test_a_throttled_move_shows_and_is_rolled_back(serving: Serving) -> None:
    before = await serving.replicas("slow")
    file = plan(serving.secure, "slow", "slow", [3, 2])
    sent = await serving.operator("alter", file, "--plan", "slow", "--reason", "try", "--throttle", "2kB")
    assert sent.code == 0, sent.errors

    async def shown() -> bool:
        (found,) = json.loads((await serving.operator("status", "-o", "json")).output)["reassignments"]
        return found["bytes_done"] is not None

    await wait_for(shown, "the bytes of the copy in the status")
    throttles = await serving.operator("throttle", "show", "-o", "json")
    assert throttles.code == 0, throttles.errors
    assert {row["whose"] for row in json.loads(throttles.output)["brokers"]} == {"ours"}
    left = await serving.operator("throttle", "clean", "--topic", "slow", "--reason", "nothing is left")
    assert left.errors.strip() == "There is nothing to delete: no throttle is left over."
    cancelled = await serving.operator("cancel", "--rollback", "--plan", "slow", "--reason", "enough")
    assert cancelled.code == 0, cancelled.errors

    async def over() -> bool:
        return not json.loads((await serving.operator("status", "-o", "json")).output)["reassignments"]

    await wait_for(over, "the rollback to end")
    assert await serving.replicas("slow") == before == (1, 2)


async def test_an_operator_may_not_do_what_the_setup_is_for(serving: Serving) -> None:
    config = serving.secure.directory / "elsewhere.toml"
    text = serving.secure.local.config_of(OPERATOR).read_text()
    config.write_text(text.replace("[log]\n", '[log]\nprefix = "elsewhere"\n'))
    refused = await serving.secure.drover("log", "init", config=config)
    assert refused.code == 2
    _progress, problem = refused.errors.splitlines()
    assert "could not be created: Kafka error 29, Authorization failed" in problem
    assert "drover acls" in problem


async def test_a_broker_that_was_killed_serves_again_and_up_finds_all_as_it_was(serving: Serving) -> None:
    local = serving.secure.local
    await local.kill(2)
    assert (await local.status()).brokers[1].state == "dead"
    assert await local.start(2)
    assert (await local.status()).brokers[1].state == "running"
    assert not await local.up(3, secure=True)
    assert await probe.known_brokers(local.spec.port("1")) == frozenset(), "nobody is served without TLS"


LOOKING = '"event": "looking for the log"'
COMMANDS = (("status",), ("freeze", "--reason", "x"), ("log", "check"), ("worker",))


@pytest.mark.parametrize("wrong", ["password", "authority"])
async def test_what_is_wrong_is_one_clear_sentence_at_once(secure: SecureCluster, wrong: str) -> None:
    (secure.directory / "wrong.password").write_text(WRONG)
    (secure.directory / "other.pem").write_text(make_certificates(["x"]).authority)
    setting, file, said = {
        "password": ("sasl_plain_password_file", "wrong.password", "or the password: check"),
        "authority": ("ssl_cafile", "other.pem", "is not trusted (self-signed"),
    }[wrong]
    config = secure.config(f"wrong-{wrong}", ADMIN, setting, str(secure.directory / file))
    async with asyncio.timeout(REFUSED_WITHIN_S):
        ended = await asyncio.gather(*(secure.drover(*arguments, config=config) for arguments in COMMANDS))
    for refused in ended:
        assert refused.code == 2, refused.errors
        assert said in refused.errors
        # A worker says before where it looks for the log.
        assert [line for line in refused.errors.splitlines() if LOOKING not in line] == [
            refused.errors.splitlines()[-1]
        ]
        assert WRONG not in refused.errors + refused.output


async def test_a_managed_cluster_that_refuses_the_password_is_unavailable_and_says_why(secure: SecureCluster) -> None:
    options = {**client_options(secure.layout, ADMIN), "sasl_plain_password": WRONG}
    driver = KafkaDriver("refused", secure.local.bootstrap, options)
    with pytest.raises(ClusterAccessError, match="refuses the user or the password") as refused:
        await driver.identify()
    assert WRONG not in str(refused.value)
    await driver.close()


async def test_a_worker_that_may_not_join_its_group_ends_and_says_why(serving: Serving) -> None:
    arguments = ("worker", "--group", "another", "--listen", "127.0.0.1:0")
    async with asyncio.timeout(REFUSED_WITHIN_S):
        ended = await serving.secure.drover(*arguments, config=serving.secure.local.config_of(WORKER))
    assert ended.code == EXIT_FAULT
    (said,) = [line for line in ended.errors.splitlines() if "the worker ends" in line]
    assert "GROUP_AUTHORIZATION_FAILED: another" in said
    assert "drover acls" in said


async def test_a_cluster_that_is_not_secure_does_not_become_so(secure: SecureCluster) -> None:
    with pytest.raises(ConfigurationError, match="3 brokers in 3 racks"):
        await secure.local.up(4, secure=True)


async def test_no_password_is_in_what_others_can_see(serving: Serving) -> None:
    secure = serving.secure
    shown = await secure.drover(
        "local", "status", "--dir", str(secure.local.directory), config=secure.local.config_file
    )
    debugged = await serving.operator("status", "--debug")
    assert shown.code == debugged.code == 0
    assert len([line for line in secure.seen if "kafka.tools.StorageTool" in line]) == 1, (
        "it was seen how users are made"
    )
    assert any("drover worker" in line for line in secure.seen)
    visible = [*secure.seen, shown.output, debugged.output, debugged.errors]
    files = [serving.log, *secure.directory.glob("*.toml"), *secure.local.directory.glob("*.*")]
    files += [file for file in secure.layout.nodes_directory.rglob("node.*") if file.is_file()]
    files += [file for file in (secure.directory / "cache").rglob("*") if file.is_file()]
    assert len(files) > 12
    visible += [file.read_text(errors="replace") for file in files]
    for secret in secure.passwords:
        assert len(secret) > 20
        assert [text[:200] for text in visible if secret in text] == []
    assert not secure.layout.format_arguments_file.exists()
