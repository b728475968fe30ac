import pytest
from serving import Server


@pytest.fixture
def start_server():
    servers = []

    def start(*arguments, **options):
        servers.append(Server(*arguments, **options))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.end()
