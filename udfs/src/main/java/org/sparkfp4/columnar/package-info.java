/**
 * Runs the functions on Arrow batches. Spark evaluates expressions row by row; the rule of this package replaces a
 * projection by one that hands whole columns to each {@link org.sparkfp4.functions.ArrowUdf}, without a copy.
 *
 * <p>This is the only package that builds on Catalyst's physical plans, which are no stable interface: where they have
 * changed, the rule leaves the plan as it is and the functions run row by row, with the same bytes.
 */
package org.sparkfp4.columnar;
