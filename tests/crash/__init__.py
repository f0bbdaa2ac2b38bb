"""The crash test: `kill -9` at random moments, and nothing lost, nothing twice, nothing left over.

`python -m tests.crash --rounds 200 --store sqlite|postgresql` runs the long form. Customers post documents, follow
their events, cancel, delete and retry (`customers`, `following`); gateways, render processes and replicas are killed
meanwhile (`killing`) and started again (`programs`, `cluster`). When all is quiet the truth is compared with what the
customers saw (`checks`): by HTTP, and by a look into the database and the folders (`stores`).
"""
