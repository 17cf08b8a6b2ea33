/**
 * The number formats and NVFP4 itself: the one readable definition of every byte. Each kernel, whatever its instruction
 * set, must give the bytes (and the error sums) that these classes give. Depends on the JDK alone.
 *
 * <p>All arithmetic is IEEE binary32, one rounding an operation, which Java's {@code float} guarantees on every
 * machine.
 */
package org.sparkfp4.formats;
