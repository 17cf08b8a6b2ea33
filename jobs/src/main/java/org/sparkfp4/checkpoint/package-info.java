/**
 * A folder of safetensors shards as what it is: its index and config.json, and by the model's family which of its tensors
 * are what, and which belong together.
 */
package org.sparkfp4.checkpoint;
