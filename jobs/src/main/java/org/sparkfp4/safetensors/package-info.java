/**
 * Files of safetensors: their headers, and the DataSource V2 table over them with its reading half, stand-alone rows or the
 * slabs of a plan, mapped as Arrow buffers or copied into them.
 */
package org.sparkfp4.safetensors;
