/**
 * How runtimes want NVFP4: names and scalars of tensors, configurations, model cards, and the arrangements of experts that
 * are stacked for their kernels.
 */
package org.sparkfp4.layouts;
