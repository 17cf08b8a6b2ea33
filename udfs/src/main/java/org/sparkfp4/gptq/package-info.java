/**
 * GPTQ: codes of weights that make up for each other's errors, by what is known of a layer's inputs. In double, on one
 * thread, in an order of its own, without fused multiply-adds: the same bytes on every machine.
 */
package org.sparkfp4.gptq;
