/**
 * Statistics of activations: their sums over the tokens of a calibration run, found in Spark, kept in a folder, and
 * read when weights are quantized.
 */
package org.sparkfp4.calibration;
