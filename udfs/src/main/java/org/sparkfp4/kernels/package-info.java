/**
 * The kernels that encode weights and keys and arrange them for runtimes, on native memory: an interface for each, a tier
 * for each instruction set, the GPU, and the Java reference as the tier that is always there. All give the same bytes and
 * the same error sums.
 */
package org.sparkfp4.kernels;
