/**
 * The SQL functions. Each is one class with two faces: a Spark {@code UDFn} over {@code byte[]}, which runs anywhere
 * row by row, and an {@link org.sparkfp4.functions.ArrowUdf}, which {@code org.sparkfp4.columnar} runs on the batches'
 * own memory. Both call the same kernel and give the same bytes.
 */
package org.sparkfp4.functions;
