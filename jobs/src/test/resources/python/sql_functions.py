"""The SQL functions from PySpark: sql_functions.py JAR CHECKPOINT

Prints a JSON object: what each function gives of the checkpoint's experts, bytes as their SHA-256.
"""
import hashlib
import json
import sys

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

jar, checkpoint = sys.argv[1:]
spark = (SparkSession.builder
         .master("local[2]")
         .config("spark.jars", jar)
         .config("spark.sql.extensions", "org.sparkfp4.columnar.Fp4Extensions")
         .config("spark.ui.enabled", False)
         .config("spark.driver.host", "127.0.0.1")
         .config("spark.driver.bindAddress", "127.0.0.1")
         .getOrCreate())
spark.sparkContext.setLogLevel("OFF")


def digest(value):
    return hashlib.sha256(value).hexdigest()


tensors = spark.read.format("safetensors").load(checkpoint).where("name LIKE 'model.layers.0.mlp.experts.0.%'")
tensors.createOrReplaceTempView("tensors")

# by SQL
quantized = spark.sql("SELECT name, nvfp4_quantize(payload, dtype, cols, 'sweep') AS q FROM tensors")
weights = {row.name: {"packed": digest(row.q.packed), "scales": digest(row.q.scales), "global_scale": row.q.global_scale}
           for row in quantized.collect()}

# by the functions of pyspark.sql
figures = tensors.select(
    "name",
    F.call_function("nvfp4_error", "payload", "dtype", "cols", F.lit("sweep")).alias("error"),
    F.call_function("tensor_stats", "payload", "dtype").alias("stats"),
    F.call_function("nvfp4_amax", "payload", "dtype").alias("amax"))
on_columns = "ArrowProject" in figures._jdf.queryExecution().executedPlan().toString()
for row in figures.collect():
    weights[row.name].update(squared_error=row.error.squared_error, mean=row.stats.mean, amax=row.amax)

# and back: what a column's struct is made of, and bytes from Python
for row in quantized.select(
        "name", F.call_function("nvfp4_dequantize", "q.packed", "q.scales", "q.global_scale").alias("w")).collect():
    weights[row.name]["decoded"] = digest(row.w)
mxfp4 = (spark.createDataFrame([(bytes.fromhex("803f40c0a53e1234") * 8,)], "p BINARY")
         .selectExpr("mxfp4_quantize(p, 'BF16', 32) AS q", "mxfp4_error(p, 'BF16', 32).relative_error AS error")
         .selectExpr("tensor_values(mxfp4_dequantize(q.packed, q.scales), 'F32') AS values", "error").first())


def refusal(query):
    try:
        spark.sql(query)
    except AnalysisException as e:
        return str(e).splitlines()[0]
    return None


print(json.dumps({
    "version": spark.version,
    "on_columns": on_columns,
    "weights": weights,
    "mxfp4": {"values": mxfp4["values"][:3], "error": mxfp4["error"]},
    "usage": spark.sql("DESCRIBE FUNCTION EXTENDED tensor_stats").collect()[2][0],
    "refusals": [
        refusal("SELECT nvfp4_error(payload, dtype, cols, 'best') FROM tensors"),
        refusal("SELECT nvfp4_error(payload) FROM tensors")]}))
spark.stop()
