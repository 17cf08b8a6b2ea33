/**
 * From one layout of NVFP4 weights to another, without quantizing again: a plan from headers, files whose every offset is
 * known, bytes that are read once on executors, an index that is written last.
 */
package org.sparkfp4.convert;
