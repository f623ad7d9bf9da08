"""A runner of coroutines, on the loops that people use."""

import asyncio
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

Run = Callable[[Coroutine[Any, Any, None]], None]

# A test that waits for what never comes fails.
SECONDS = 60

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


@pytest.fixture(params=list(LOOPS))
def run(request: pytest.FixtureRequest) -> Run:
    """Give what runs a coroutine to its end, on each loop."""

    async def bounded(coroutine: Coroutine[Any, Any, None]) -> None:
        async with asyncio.timeout(SECONDS):
            await coroutine

    def on_the_loop(coroutine: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            try:
                runner.run(bounded(coroutine))
            except BaseException:
                # A failed test leaves its connection open. As an error, the warning of that keeps uvloop from ending.
                warnings.simplefilter("ignore", ResourceWarning)
                raise

    return on_the_loop
