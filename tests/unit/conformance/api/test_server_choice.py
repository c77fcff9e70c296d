from fairlead.conformance.api.server.in_process import InProcess
from fairlead.conformance.api.server_choice import _Own


def test_cases_that_share_objects_start_one_server() -> None:
    """A new server for each case would be unnecessary."""
    started = []

    def start() -> InProcess:
        started.append(InProcess())
        return started[-1]

    own = _Own(start)
    cases = [{"theme": "01-discovery", "id": f"case-{number}"} for number in range(3)]
    assert [list(own.servers(case)) for case in cases] == [started] * 3
    assert len(started) == 1
