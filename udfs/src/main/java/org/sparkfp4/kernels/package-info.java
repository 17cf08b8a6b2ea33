/**
 * The kernels that encode NVFP4 on native memory: one interface, a tier for each instruction set, and the Java
 * reference as the tier that is always there. All give the same bytes and the same error sums.
 */
package org.sparkfp4.kernels;
