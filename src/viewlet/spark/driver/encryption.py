"""Whether what cells hear and say is encrypted: as what Spark's own processes say to each other, unless told."""

from __future__ import annotations

from pyspark.sql import SparkSession

from viewlet.errors import Error
from viewlet.spark.driver.cores import is_local
from viewlet.spark.process.secret import new_pem

SPARKS = (  # any of them says that the network is not to be trusted
    "spark.network.crypto.enabled",
    "spark.ssl.rpc.enabled",
    "spark.ssl.enabled",
    "spark.authenticate.enableSaslEncryption",
)


def check_encrypted(encrypted: object) -> None:
    if encrypted is not None and not isinstance(encrypted, bool):
        raise Error(f"encrypted={encrypted!r}: give True or False, or leave it out to do as Spark does")


def run_pem(spark: SparkSession, encrypted: bool | None) -> str:
    """Of a new run; "" for one that does not encrypt. In a local session nobody else hears the cells."""
    if encrypted is None:
        encrypted = not is_local(spark) and any(_is_on(spark, name) for name in SPARKS)
    return new_pem() if encrypted else ""


def _is_on(spark: SparkSession, setting: str) -> bool:
    """As Spark reads it, to which True, from a file of settings, is true as well."""
    return str(spark.conf.get(setting, "")).strip().lower() == "true"
