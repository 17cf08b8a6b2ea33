package org.sparkfp4.jobs;

/** What a SparkSubmit left: its exit status (137 when it was killed), its standard output, its standard error. */
record SparkSubmitResult(int status, String out, String err) {}
