"""Nothing shows the password."""

import pickle

import pytest

import longshore
from tests.servers import Endpoint


def test_nothing_shows_the_password(postgres: Endpoint) -> None:
    secret = "s3cr3t-and-long"
    connection = longshore.connect({"url": postgres.url(), "password": secret})
    pool = longshore.Pool({"url": postgres.url(), "password": secret})
    for shown in (connection, pool):
        assert secret not in repr(shown) + str(shown) + str(vars(shown))
        with pytest.raises(TypeError, match="cannot be pickled") as caught:
            pickle.dumps(shown)
        assert secret not in str(caught.value)
    assert repr(connection) == "<Connection postgresql://*** open>"
    connection.close()
    assert repr(connection) == "<Connection postgresql://*** closed>"
    pool.close()
