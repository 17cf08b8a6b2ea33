/**
 * The DataSource V2 table over files of safetensors, and its reading half: stand-alone rows or the slabs of a plan, mapped
 * as Arrow buffers or copied into them.
 */
package org.sparkfp4.source;
