/**
 * What a run tells of its result: {@code report.json} for programs, a Parquet table of layers for notebooks, and one
 * HTML page for readers.
 */
package org.sparkfp4.report;
