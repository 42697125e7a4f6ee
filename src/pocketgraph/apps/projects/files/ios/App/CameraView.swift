import AVFoundation
import SwiftUI

/// What the camera sees, and what the model says of it.
struct CameraView: View {
    @StateObject private var camera = CameraModel()

    var body: some View {
        ZStack(alignment: .bottom) {
            CameraPreview(session: camera.session)
                .ignoresSafeArea(edges: .top)
            VStack(alignment: .leading, spacing: 5) {
                ForEach(camera.recognitions) { found in
                    HStack {
                        Text(camera.areShares
                            ? String(format: "%.0f%%", 100 * found.score) : String(format: "%.2f", found.score))
                            .frame(width: 60, alignment: .trailing)
                        Text(found.title)
                    }
                }
                HStack {
                    Text(camera.message)
                        .font(.footnote)
                    Spacer()
                    Button(camera.isFrozen ? "Continue" : "Freeze frame") { camera.freeze() }
                }
            }
            .frame(maxWidth: .infinity, alignment: .leading)
            .padding()
            .foregroundColor(.white)
            .background(Color.black.opacity(0.5))
        }
        .onAppear { if !camera.isFrozen { camera.start() } }
        .onDisappear { camera.stop() }
    }
}

/// The camera's own picture.
struct CameraPreview: UIViewRepresentable {
    let session: AVCaptureSession

    func makeUIView(context: Context) -> PreviewView {
        let view = PreviewView()
        view.preview.session = session
        view.preview.videoGravity = .resizeAspectFill
        return view
    }

    func updateUIView(_ view: PreviewView, context: Context) {}
}

/// A view that the camera's picture fills.
final class PreviewView: UIView {
    override class var layerClass: AnyClass { AVCaptureVideoPreviewLayer.self }

    var preview: AVCaptureVideoPreviewLayer {
        guard let layer = layer as? AVCaptureVideoPreviewLayer else { fatalError("the layer is of another class") }
        return layer
    }
}
