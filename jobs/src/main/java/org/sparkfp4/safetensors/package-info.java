/** The file format of safetensors: dtypes, tensors, and headers read from whatever the bytes are and written. */
package org.sparkfp4.safetensors;
