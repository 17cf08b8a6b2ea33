"""A checkpoint becomes an NVFP4 checkpoint and is verified: a DAG for Airflow 3.

Started by hand or by another DAG (TriggerDagRunOperator), with the folders as parameters. The tasks run spark-submit
where the Airflow worker is: Spark, its conf/spark-defaults.conf with the master, and the jar of `./sparkfp4 package`, as
sparkfp4.jar, must be there. A task that failed or was killed is tried again and resumes; on a finished output it does
nothing.
"""

from datetime import timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Param

SUBMIT = (
    '"$SPARK_HOME/bin/spark-submit" --load-spark-defaults '
    '--properties-file "$SPARKFP4_HOME/conf/spark-defaults-cluster-cpu.conf" '
    '--class org.sparkfp4.jobs.Main "$SPARKFP4_HOME/sparkfp4.jar" '
)

# Parameters reach the shell as variables, never as text of the command.
FOLDERS = {"INPUT": "{{ params.input }}", "OUTPUT": "{{ params.output }}", "REPORT": "{{ params.report }}"}

with DAG(
    dag_id="sparkfp4_quantize",
    description="Quantizes a mixture-of-experts checkpoint to NVFP4 and verifies it",
    schedule=None,
    catchup=False,
    # of two runs on one output the second fails at once; those on other outputs may run beside it
    max_active_runs=4,
    params={
        "input": Param(type="string", minLength=1, description="folder of the source checkpoint"),
        "output": Param(type="string", minLength=1, description="folder of the new checkpoint"),
        "report": Param(type="string", pattern=r"\.html$", description="page of the report, outside both"),
    },
    tags=["sparkfp4"],
) as dag:
    quantize = BashOperator(
        task_id="quantize",
        bash_command=SUBMIT + 'quantize --input "$INPUT" --output "$OUTPUT" --report "$REPORT" --log-format json',
        env=FOLDERS,
        append_env=True,
        retries=2,
        # longer than a dead run's lock stands
        retry_delay=timedelta(minutes=2),
        execution_timeout=timedelta(hours=12),
    )
    verify = BashOperator(
        task_id="verify",
        bash_command=SUBMIT + 'verify --source "$INPUT" --quantized "$OUTPUT" --log-format json',
        env=FOLDERS,
        append_env=True,
        # a difference (status 3) is there the second time too
        retries=0,
        execution_timeout=timedelta(hours=12),
    )
    quantize >> verify
