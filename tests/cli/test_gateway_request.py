"""A command's request to a gateway: the URLs that it does not take."""

import pytest

from styx.cli.exit_codes import CommandFailed
from styx.cli.gateway_request import GatewayRead, get_entity


@pytest.mark.parametrize("url", ["http://me:hunter2@127.0.0.1:1", "https://hunter2@127.0.0.1:1/x"])
def test_no_password_in_a_url(url: str) -> None:
    with pytest.raises(CommandFailed, match="with a user or a password in it is not taken") as caught:
        get_entity(url, GatewayRead("account", "a", 1.0))
    assert "hunter2" not in str(caught.value)
