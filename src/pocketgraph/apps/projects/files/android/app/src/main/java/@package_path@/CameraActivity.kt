package @package@

import android.Manifest
import android.content.Intent
import android.content.pm.PackageManager
import android.graphics.Bitmap
import android.graphics.Color
import android.graphics.Matrix
import android.os.Bundle
import android.view.Gravity
import android.view.WindowManager
import android.widget.Button
import android.widget.FrameLayout
import android.widget.TextView
import androidx.activity.ComponentActivity
import androidx.activity.result.contract.ActivityResultContracts
import androidx.camera.core.CameraSelector
import androidx.camera.core.ImageAnalysis
import androidx.camera.core.ImageProxy
import androidx.camera.core.Preview
import androidx.camera.lifecycle.ProcessCameraProvider
import androidx.camera.view.PreviewView
import androidx.core.content.ContextCompat
import java.util.Locale
import java.util.concurrent.ExecutorService
import java.util.concurrent.Executors

/** Shows what the camera sees, and what the model says of it. */
class CameraActivity : ComponentActivity() {
    private lateinit var preview: PreviewView
    private lateinit var text: TextView
    private lateinit var thread: ExecutorService
    private val loading = lazy { Model(this) }
    private val model by loading

    private val asked = registerForActivityResult(ActivityResultContracts.RequestPermission()) { isAllowed ->
        if (isAllowed) start() else text.setText(R.string.no_camera)
    }

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        window.addFlags(WindowManager.LayoutParams.FLAG_KEEP_SCREEN_ON)
        thread = Executors.newSingleThreadExecutor()
        preview = PreviewView(this)
        text = TextView(this).apply {
            textSize = 20f
            setTextColor(Color.WHITE)
            setBackgroundColor(0xcc1f5f8b.toInt())
            setPadding(32, 24, 32, 24)
        }
        val benchmark = Button(this).apply {
            setText(R.string.benchmark)
            setOnClickListener { startActivity(Intent(this@CameraActivity, BenchmarkActivity::class.java)) }
        }
        val wide = FrameLayout.LayoutParams.MATCH_PARENT
        val narrow = FrameLayout.LayoutParams.WRAP_CONTENT
        setContentView(FrameLayout(this).apply {
            fitsSystemWindows = true
            addView(preview, FrameLayout.LayoutParams(wide, wide))
            addView(text, FrameLayout.LayoutParams(wide, narrow, Gravity.BOTTOM))
            addView(benchmark, FrameLayout.LayoutParams(narrow, narrow, Gravity.TOP or Gravity.END))
        })
        val isAllowed = ContextCompat.checkSelfPermission(this, Manifest.permission.CAMERA)
        if (isAllowed == PackageManager.PERMISSION_GRANTED) start() else asked.launch(Manifest.permission.CAMERA)
    }

    private fun start() {
        val coming = ProcessCameraProvider.getInstance(this)
        coming.addListener({
            // A camera that another app holds, or a screen that is closed meanwhile, ends in exceptions.
            runCatching { show(coming.get()) }.onFailure { text.text = it.toString() }
        }, ContextCompat.getMainExecutor(this))
    }

    private fun show(camera: ProcessCameraProvider) {
        val shown = Preview.Builder().build().also { it.setSurfaceProvider(preview.surfaceProvider) }
        // While a frame is being looked at, others are dropped.
        val looked = ImageAnalysis.Builder()
            .setBackpressureStrategy(ImageAnalysis.STRATEGY_KEEP_ONLY_LATEST)
            .setOutputImageFormat(ImageAnalysis.OUTPUT_IMAGE_FORMAT_RGBA_8888)
            .build()
        looked.setAnalyzer(thread, ::look)
        camera.unbindAll()
        val sides = listOf(CameraSelector.DEFAULT_BACK_CAMERA, CameraSelector.DEFAULT_FRONT_CAMERA)
        val side = sides.find(camera::hasCamera)
        if (side == null) text.setText(R.string.no_camera) else camera.bindToLifecycle(this, side, shown, looked)
    }

    private fun look(frame: ImageProxy) {
        // A model that does not load or run throws exceptions of many kinds; the person is to see why.
        val said = runCatching { answer(frame.use { upright(it.toBitmap(), it.imageInfo.rotationDegrees) }) }
            .getOrElse(Throwable::toString)
        runOnUiThread { text.text = said }
    }

    private fun answer(picture: Bitmap): String {
        model.feed(picture)
        val milliseconds = model.run()
        val lines = model.best().map { String.format(Locale.ROOT, "%s: %.2f", it.title, it.score) }
        return (lines + String.format(Locale.ROOT, "%.1f ms", milliseconds)).joinToString("\n")
    }

    private fun upright(picture: Bitmap, degrees: Int): Bitmap {
        if (degrees == 0) return picture
        val turned = Matrix().apply { postRotate(degrees.toFloat()) }
        return Bitmap.createBitmap(picture, 0, 0, picture.width, picture.height, turned, true)
    }

    override fun onDestroy() {
        super.onDestroy()
        thread.execute { if (loading.isInitialized()) model.close() }
        thread.shutdown()
    }
}
