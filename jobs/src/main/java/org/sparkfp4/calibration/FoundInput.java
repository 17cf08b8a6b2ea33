package org.sparkfp4.calibration;

/**
 * Activations as a source has them.
 *
 * @param module the name that they come under
 * @param cols K
 * @param routed whether their tokens say which experts they go to
 * @param where a file or a table that has them, for messages
 */
record FoundInput(String module, long cols, boolean routed, String where) {}
