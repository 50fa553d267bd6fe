"""A data directory whose app an earlier release recorded, by the names that styx's modules had then."""

from __future__ import annotations

import msgspec
import pytest

from styx.embedded_engine.app_record import read_record, versions, write_record
from styx.embedded_engine.storage import OBJECTS_NAME
from styx.store.directory import DirectoryStore
from tests.deployment.earlier_release import as_before, names_in
from tests.embedded.app_files import Edited

pytestmark = pytest.mark.anyio
TIMES = """
def limit(limits: Limits) -> int:
    return limits.request_bytes_max

async def put(ctx: Context, value: int) -> int:
    import styx.model.placement as placement
    assert placement.__name__.endswith("placement")
    from styx.model.partitioning import KeyType
    assert KeyType.__module__.endswith("partitioning")
    assert limit(LIMITS) == own_limits.MIB
    await ctx.put(value * {factor})
    return value * {factor}
"""
MORE = "from styx.model import limits as own_limits\nfrom styx.model.limits import Limits\nLIMITS = Limits()"


async def test_its_epochs_run_on_the_recorded_code(edited: Edited) -> None:
    async with edited.open(edited.app(functions=TIMES.format(factor=2), more=MORE)) as client:
        assert await client.call("acc", "a", "put", 5) == 10
        client.crash()

    store = DirectoryStore(edited.data / OBJECTS_NAME)
    (version,) = versions(store)
    record = read_record(store, version)
    assert record is not None
    assert record.code is not None, record.problem
    code = as_before(record.code)
    assert {"styx.limits", "styx.placement", "styx.partitioning"} <= names_in(code)
    write_record(store, msgspec.structs.replace(record, code=code))

    async with edited.open(edited.app(functions=TIMES.format(factor=3), more=MORE)) as client:
        assert client.state() == {("acc", "a"): 10}
        assert client.engine.app_change.recorded_code_ran
        assert await client.call("acc", "a", "put", 5) == 15
