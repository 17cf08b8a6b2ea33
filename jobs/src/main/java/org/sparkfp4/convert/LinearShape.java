package org.sparkfp4.convert;

/**
 * A linear layer and its size.
 *
 * @param module its name
 * @param rows output features
 * @param cols K
 */
record LinearShape(String module, long rows, long cols) {}
