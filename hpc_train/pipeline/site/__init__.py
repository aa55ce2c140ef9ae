"""What `hpctrain site` does: list, show, check and detect profiles.

Here: profiles together with plans, scripts and a live cluster.
Not here: loading and validation (`sites`), the answers of a cluster (`probe`).
"""
