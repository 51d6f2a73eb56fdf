import pytest

from .programs import Compiler


@pytest.fixture(params=[True, False], ids=["native", "python"])
def compiler(request: pytest.FixtureRequest) -> Compiler:
    """What every test of behaviour runs with: both entries must do the same."""
    return Compiler(request.param)


@pytest.fixture
def native() -> Compiler:
    """For what only the native entry does."""
    return Compiler(True)
